-- The folded text of a row, for search; NULL until it is kept.
ALTER TABLE {prefix}rows ADD COLUMN search_text text;
