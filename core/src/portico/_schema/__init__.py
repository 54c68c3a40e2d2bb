"""JSON Schema (2020-12) as Portico understands it: references, values, validation, comparison and the strict form."""
