"""Write a comparison as one web page that needs no server, no network and no fonts.

page.py            puts it together: page.html, style.css and three scripts, data goes in as JSON
tables.py          the ranking, all costs and the events, as HTML that reads without a script
drawings.py        one run a strategy as intervals, for the scripts to draw
advice_section.py  what `recommend` puts at its head
Start at           page.report_page
"""
