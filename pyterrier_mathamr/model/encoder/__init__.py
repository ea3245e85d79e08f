"""The encoder of the paper and its score, and nothing else (MathAMR+, 3.3 and 3.5).

::

    GraphBatch  ──encoder──▶  float32 [r, d_p]  ──maxsim──▶  S(Q, D), equation 3.4

    encoder     Figure 3.3, layer by layer: equations 3.1 and 3.3
    rgcn        equation 2.4, and the edges of a batch sorted once for all layers
    batching    many graphs through the encoder
    maxsim      exact for inference, with gradient for training
"""
