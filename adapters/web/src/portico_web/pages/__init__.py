"""The main text of web pages for Portico: HTML, PDF and plain text.

`reader` is the entry. `addresses` decides which links may be read, `network` connects to checked addresses, and
`fetching` follows one link to its page and obeys `robots`. `extraction` keeps processes that run `worker`, which
finds the text.
"""
