"""ARQMath as datasets of ir_datasets (``arqmath/2022/task1``) and PyTerrier (``irds:…``, ``arqmath:…``).

::

    autoregister   registers the datasets once ir_datasets is imported
      └ definitions    the datasets and their parts; the store of documents by id
          └ records    documents, queries and judgments
    providers      ``pt.get_dataset('arqmath:2022/task1')``; folders in BEIR's layout, ``mathamr-beir:FOLDER``
"""
