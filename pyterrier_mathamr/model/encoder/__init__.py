"""The encoder of the paper and its score, and nothing else (MathAMR+, 3.3 and 3.5).

::

    GraphBatch  ──encoder──▶  float32 [r, d_p]  ──maxsim──▶  S(Q, D), equation 3.4

    encoder     Figure 3.3, layer by layer: equations 3.1 and 3.3
    ├── initial              first states of the nodes (4.3.4)
    └── rgcn                 equation 2.4
        └── plan             the edges of a batch, sorted once for all layers
            └── sorted_segments
    in_batches  many graphs through the encoder
    maxsim      exact for inference, with gradient for training
    └── rounding             sums that do not depend on their order
"""
