"""Hybrid search in one statement: BM25 over the words that PostgreSQL's text search knows, weighed against the cosine.

PostgreSQL's own ranking does not know how rare a word is. Here the index finds the texts that have each word of the
question, which also tells how rare it is; and ``ts_rank_cd`` with all weights 1 tells how often a text has it: for one
word each place of it is a cover of its own, and counts 1 (`calc_rank_cd` in PostgreSQL's tsrank.c).
"""

from __future__ import annotations

# BM25 (Robertson and Zaragoza 2009) with k1 = 1.2 and b = 0.75, and Lucene's idf, which is positive also for a word
# that most texts have. Divided by what a perfect text would reach, which is all the idf times k1 + 1, a score says
# which part of the question a text answers, and so compares with a cosine. Where there are many texts, their number is
# an estimate; their mean length is that of the texts found. As in the documents connector, a word that more than 30% of
# many texts have is left out when there are others: it says next to nothing, and each text that has it costs time.
_ANSWERED = """WITH known AS MATERIALIZED (
    SELECT texts, greatest(5000, 0.3 * texts)::bigint AS most FROM (
        SELECT CASE WHEN reltuples >= 20000 THEN reltuples::float8 ELSE (SELECT count(*) FROM {texts}) END AS texts
        FROM pg_class WHERE oid = {texts_name}::regclass) AS counted
), asked AS MATERIALIZED (
    SELECT lexeme, array_to_tsvector(ARRAY[lexeme])::text::tsquery AS term
    FROM unnest(to_tsvector(%(language)s::regconfig, %(words)s))
), found AS MATERIALIZED (
    SELECT lexeme, number, length, times FROM asked CROSS JOIN LATERAL (
        SELECT number, length, ts_rank_cd(ARRAY[1, 1, 1, 1]::real[], words, term)::float8 AS times
        FROM {texts} WHERE words @@ term LIMIT (SELECT most + 1 FROM known)) AS with_it
), rarity AS MATERIALIZED (
    SELECT lexeme, count(number) AS had FROM asked LEFT JOIN found USING (lexeme) GROUP BY lexeme
), weighed AS MATERIALIZED (
    SELECT lexeme, ln(1 + greatest(texts - had + 0.5, 0.5) / (had + 0.5)) AS idf FROM rarity CROSS JOIN known
    WHERE had <= most OR NOT EXISTS (SELECT FROM rarity CROSS JOIN known WHERE had BETWEEN 1 AND most)
), whole AS MATERIALIZED (
    SELECT sum(idf) AS idf, (SELECT greatest(avg(length), 1)::float8 FROM found) AS length FROM weighed
), answered AS MATERIALIZED (
    SELECT number,
        sum(weighed.idf * times / (times + 1.2 * (0.25 + 0.75 * found.length / whole.length))) / whole.idf AS lexical
    FROM found JOIN weighed USING (lexeme) CROSS JOIN whole GROUP BY number, whole.idf
)"""

WORDS = (
    _ANSWERED
    + """SELECT id, metadata, lexical, lexical, 0.0::float8 FROM answered JOIN {vectors} USING (number)
    WHERE {condition} ORDER BY lexical DESC, number LIMIT {top}"""
)
"""The best by words alone."""

# Candidates are the best of each half. How much the words count, where nobody says so, is by what they weigh: a BM25 of
# 25 counts as much as a cosine of 1, and BM25 is at most 2.2 times the idf (0.088 = 2.2 / 25). A long question, or one
# of rare words, says much by them; a short one of common words little, and then the vector decides. The documents
# connector weighs in the same way, and says by what measurements.
BOTH = (
    _ANSWERED
    + """, near AS MATERIALIZED (
    SELECT number FROM {vectors} WHERE {condition} ORDER BY {order} LIMIT {depth}
), worded AS MATERIALIZED (
    SELECT number FROM {answered} ORDER BY lexical DESC, number LIMIT {depth}
), share AS MATERIALIZED (
    SELECT CASE WHEN idf IS NULL THEN 0 ELSE coalesce(%(share)s::float8, 0.088 * idf / (0.088 * idf + 1)) END AS words
    FROM whole
), candidates AS MATERIALIZED (
    SELECT number, id, metadata, coalesce(lexical, 0) AS lexical, {product} AS cosine
    FROM (SELECT number FROM near UNION SELECT number FROM worded) AS chosen
    JOIN {vectors} USING (number) LEFT JOIN answered USING (number)
), fused AS MATERIALIZED (
    SELECT *, words * lexical + (1 - words) * greatest(cosine, 0) AS score FROM candidates CROSS JOIN share
)
SELECT id, metadata, score, lexical, cosine FROM fused WHERE score > 0 ORDER BY score DESC, number LIMIT {top}"""
)
"""The best by words and vector; ``{answered}`` is `ALL_ANSWERED`, or with a condition `SOME_ANSWERED`."""

ALL_ANSWERED = "answered"
SOME_ANSWERED = "answered JOIN {vectors} USING (number) WHERE {condition}"
