"""Pages and Plotly figures of the server's answers. Computes no statistic."""
