"""The style sheet of the report page, on screen and on paper."""

STYLES = """
:root { --ink: #1d2730; --quiet: #5b6770; --line: #dde2e6; --paper: #ffffff; --wash: #f5f7f8; --accent: #0b6e8a; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--wash); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 54rem; margin: 2rem auto; padding: 2.5rem 3rem; background: var(--paper);
  border: 1px solid var(--line); border-radius: 10px; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; letter-spacing: -.01em; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .7rem; }
.subtitle, .note, footer { color: var(--quiet); }
.subtitle { margin: 0 0 1.6rem; }
.note, footer { font-size: .86rem; }
.cards { display: grid; grid-template-columns: repeat(4, 1fr); gap: .8rem; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; display: flex; flex-direction: column; }
.card .label { font-size: .8rem; color: var(--quiet); }
.card .value { font-size: 1.35rem; font-weight: 650; color: var(--accent); white-space: nowrap; }
.card .note { font-size: .78rem; line-height: 1.35; overflow-wrap: anywhere; }
.statement { margin: 0; padding: 1rem 1.2rem; background: var(--wash); border-left: 4px solid var(--accent); }
.warning { padding: .8rem 1.2rem; background: #fdecea; border-left: 4px solid #b3261e; color: #7a1a14; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .42rem .8rem .42rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; font-size: .8rem; }
table.pairs td:first-child { width: 60%; }
table.pairs td:last-child { font-weight: 650; }
figure { margin: 0; text-align: center; }
img { max-width: 100%; height: auto; }
details { margin-top: 1rem; }
summary { cursor: pointer; color: var(--accent); }
ul { padding-left: 1.2rem; margin: 0 0 .8rem; }
footer { margin-top: 2rem; padding-top: 1rem; border-top: 1px solid var(--line); }
@media (max-width: 44rem) { main { margin: 0; padding: 1.4rem; border: 0; border-radius: 0; }
  .cards { grid-template-columns: repeat(2, 1fr); } }
@media print { body { background: none; font-size: 10.5pt; } main { border: 0; margin: 0; padding: 0; max-width: none; }
  figure, tr, .card, .statement { break-inside: avoid; } h2 { break-after: avoid; } img { max-height: 15cm; }
  .cards { grid-template-columns: repeat(4, 1fr); } }
"""
