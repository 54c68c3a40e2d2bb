"""The main text of web pages for Portico: HTML, PDF and plain text.

`reader` is the entry. Fetching: `links` and `addresses` decide what may be read, `connecting` opens checked
connections, and `fetching` follows one link to its page with the help of `robots` and `cache`.
Extraction: `extraction` keeps processes that run `_worker`, which uses `_wire`, `_html` or `_pdf`.
"""
