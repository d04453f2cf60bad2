"""What the papers' printed numbers say of themselves.

`findings.csv` holds what is wrong with printed cells, the heaviest first, and `reprinted.csv` the rows
of FPR95 on UBC PhotoTour that several papers print, by the paper that printed them first; a test
recomputes both. Sentences and the rules by which print judges them are columns of
`lib/study/claims/*.csv`.
"""
