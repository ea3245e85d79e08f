"""A folder of the release as a whole.

file_names    patterns of the official names, by year and task
│
inventory     which file has which role: present, packed or missing; finds files for the collection
│
├── unpack        archives to the files that are read
├── checks        each file read and checked
└── statistics    Table 4.3 of the paper, counted here beside the counts in `published`
"""
