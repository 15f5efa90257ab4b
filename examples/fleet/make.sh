#!/bin/sh
# Writes the traces of this folder: four ranks, of which rank 2 has the experts with most tokens.
for rank in 0 1 2 3; do
  awk -v rank=$rank 'BEGIN {
    print "# vramyard-trace 1\n# framework=PyTorch\n# config={\"conf\":\"\"}"
    for (i = 0; i < 16; i++) print "a", ++id, 512 "MiB"
    for (step = 0; step < 12; step++) {
      tokens = 100 + (rank == 2 ? 9 : 3 + rank % 2) * (7 * step % 5)
      for (e = 0; e < 6; e++) {
        print "a", ++id, tokens * (e % 3 + 1) "MiB"; live[e] = id
        if (e == 3) print "a", ++id, 3 "MiB"
      }
      for (e = 5; e >= 0; e--) print "f", live[e]
    }
  }' > rank_$rank.trace
done
