"""A decision table as one web page that needs no server, no script, no network and no fonts.

page.py   puts it together: page.html, extra.css over the lab's own style
maps.py   which strategy wins over two parameters, and by how much
plots.py  Pareto plot and sensitivity bars
tables.py the strategies side by side, and every cell
Start at  page.table_page
"""
