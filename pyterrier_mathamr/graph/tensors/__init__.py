"""Graphs to arrays of vocabulary ids.

::

    label ──normalise──▶ vocabulary: Vocabulary
                                │
    MathAMRGraph ──graph_tensors──▶ GraphTensors ──batch──▶ GraphBatch, what the encoder reads
                                        ▲ │
                                   tensor_store, on disk
"""
