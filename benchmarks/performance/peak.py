"""The peak of live bytes in a trace, as a user of a library for tables computes it.

python3 peak.py polars|duckdb|pandas FILE.parquet prints the bytes. A free has no size, so it takes
the size of the row before it with the same id. Only rows of allocations and frees count.
"""

import sys

library, path = sys.argv[1:3]
if library == "duckdb":
    import duckdb

    query = f"""
        SELECT max(live) FROM (
            SELECT sum(CASE kind WHEN 'alloc' THEN size_bytes::BIGINT ELSE -before::BIGINT END)
                   OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) AS live
            FROM (SELECT kind, size_bytes, file_row_number AS place,
                         lag(size_bytes) OVER (PARTITION BY id ORDER BY file_row_number) AS before
                  FROM read_parquet('{path}', file_row_number = true) WHERE kind IN ('alloc', 'free')))"""
    print(int(duckdb.sql(query).fetchall()[0][0]))
elif library == "polars":
    import polars as pl

    rows = pl.scan_parquet(path).filter(pl.col("kind").is_in(["alloc", "free"]))
    rows = rows.select("kind", "id", pl.col("size_bytes").cast(pl.Int64))
    rows = rows.with_columns(pl.col("size_bytes").shift().over("id").alias("before"))
    change = pl.when(pl.col("kind") == "alloc").then(pl.col("size_bytes")).otherwise(-pl.col("before"))
    print(rows.select(change.cum_sum().max()).collect().item())
elif library == "pandas":
    import pandas as pd

    rows = pd.read_parquet(path, columns=["kind", "id", "size_bytes"])
    rows = rows[rows["kind"].isin(["alloc", "free"])].astype({"size_bytes": "int64"})
    before = rows.groupby("id")["size_bytes"].shift(fill_value=0)
    print(int(rows["size_bytes"].where(rows["kind"] == "alloc", -before).cumsum().max()))
else:
    sys.exit(f"unknown library {library}: want polars, duckdb or pandas")
