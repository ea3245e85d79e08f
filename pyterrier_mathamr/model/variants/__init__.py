"""What goes beyond the paper's model, and where each part enters.

::

    starting_weights   before training: labels from word vectors, projections from principal directions
    text_rows          GraphTensors.features from the text of each row, by a TextEncoder (text), which
                       text_loading finds and text_folder checks
    text_windows       the same from one pass over a window of the post (late chunking)
    token_network      the states of a text encoder before it takes their mean
    formula_rows       GraphTensors.features from the trees of each formula, by In+Out
    network            the module that encodes a batch: the paper's Encoder or one with text_rows or bags
    score_weights      w and a of the score: Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc

Everything else reads the paper: a model with default options passes through none of these but :func:`network.network`.
"""
