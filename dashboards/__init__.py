"""Pages and Plotly figures of the server's answers. Computes no statistic.

app                      the API and the pages, the one app that is served
pages, figures           one function per page; answers to figures
words, marks, theme      numbers as text; signs and letters; the colours, read from `static/theme.css`
templates/, static/      what is rendered, and what is served as it is
"""
