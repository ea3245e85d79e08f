"""Contrastive training on question-answer pairs (MathAMR+, 3.4).

::

    data      pairs, split by question; known answers and hard negatives
      │
    files     the tensors of the graphs
      │
    batches   graphs of B questions, B answers, H hard negatives      (augment: noise)
      │
    losses    of the rows of a batch
      │
    trainer   Trainer.fit: all of it in order ─▶ the model of the best epoch

    score_weight_fitting   the weights of a trained model's score
"""
