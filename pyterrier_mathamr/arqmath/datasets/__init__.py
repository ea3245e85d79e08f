"""ARQMath as datasets of ir_datasets (``arqmath/2022/task1``) and PyTerrier (``irds:…``, ``arqmath:…``).

autoregister   registers the datasets once ir_datasets is imported
│
definitions    the datasets and their parts
│
handlers       documents, queries, judgments and pairs as records; docstore: documents by id
│
home           the local copy: register_arqmath, ARQMATH_HOME, or ir_datasets' home
provider       PyTerrier's ``pt.get_dataset('arqmath:2022/task1')``

beir           other collections, from folders in BEIR's layout: ``pt.get_dataset('mathamr-beir:FOLDER')``
"""
