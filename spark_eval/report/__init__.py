"""Write a decision table as one web page that needs no server, no script, no network and no fonts.

sweep_page.py     puts it together: page.html, extra.css over the lab's own style
decision_maps.py  which strategy wins over two parameters, and by how much
plots.py          Pareto plot and sensitivity bars
cell_tables.py    the strategies side by side, and every cell
Start at          sweep_page.table_page
"""
