/**
 * The style of a page: light and dark by the reader's setting, readable from 320 pixels on, and on paper.
 * Colours of kinds are distinguishable for colour-blind readers.
 */
export const style = `
:root { color-scheme: light dark; --text: #1a1d21; --faint: #5a6270; --back: #ffffff; --panel: #f5f6f8; --line: #d5d9e0;
  --series-0: #0b6bcb; --series-1: #b8500a; --series-2: #2e7d32; --series-3: #8e24aa; --warn: #8a5300; --warn-back: #fff4dc; --good: #2e7d32; --bad: #b3261e;
  --heat-0: #9fb6cf; --heat-1: #7ba3c9; --heat-2: #4a86bd; --heat-3: #b56a1c; --heat-4: #b3261e;
  --kind-0: #3e95f6; --kind-1: #e44198; --kind-2: #de9500; --kind-3: #4c0085; --kind-4: #11514b; --kind-5: #a86115; --kind-6: #353cec; --kind-none: #b4bac4; }
@media (prefers-color-scheme: dark) { :root { --text: #e7eaee; --faint: #a3adbb; --back: #14171b; --panel: #1d2127; --line: #39414c;
  --series-0: #6cb2ff; --series-1: #ffab6b; --series-2: #7fd086; --series-3: #d99cf0; --warn: #ffd48a; --warn-back: #3a2d12; --good: #7fd086; --bad: #ff8a80;
  --heat-0: #4b5d70; --heat-1: #5b82a8; --heat-2: #6cb2ff; --heat-3: #ffb86b; --heat-4: #ff7a6b;
  --kind-0: #3daffe; --kind-1: #fa67b8; --kind-2: #f6f616; --kind-3: #8d61f5; --kind-4: #22996a; --kind-5: #d2be1f; --kind-6: #ff3b10; --kind-none: #5a6372; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 860px; margin: 0 auto; padding: 16px; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.5em 0; }
h2 { font-size: 1.25rem; margin: 2em 0 0.4em; border-bottom: 1px solid var(--line); padding-bottom: 0.2em; }
h3 { font-size: 1rem; margin: 1.4em 0 0.4em; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 16px; }
a { color: var(--series-0); }
p { max-width: 70ch; }
.verdict { margin: 0.6em 0; padding: 8px 14px; max-width: none; border-left: 6px solid var(--faint); background: var(--panel); border-radius: 4px 8px 8px 4px; }
.verdict.good { border-color: var(--good); } .verdict.bad { border-color: var(--bad); }
.verdict strong { display: block; font-size: 1.25rem; line-height: 1.3; } .verdict span { color: var(--faint); }
dl { display: grid; grid-template-columns: minmax(110px, max-content) 1fr; gap: 2px 16px; margin: 0.6em 0; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
.tiles { grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 10px; margin: 0.8em 0; }
.tiles div { background: var(--panel); border-radius: 8px; padding: 6px 12px; } .tiles dt { font-size: 0.8125rem; }
.tiles strong { display: block; font-size: 1.2rem; line-height: 1.3; } .tiles span { display: block; font-size: 0.8125rem; line-height: 1.35; color: var(--faint); }
figure { margin: 1.2em 0; padding: 12px; background: var(--panel); border-radius: 8px; }
figcaption span { color: var(--faint); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 6px 0; font-size: 0.9rem; }
.key { display: inline-flex; align-items: center; gap: 6px; }
.chart { position: relative; } .chart svg { display: block; width: 100%; height: auto; overflow: visible; }
.tip { position: absolute; width: 20px; height: 20px; margin: -10px 0 0 -10px; border-radius: 50%; }
.map { position: relative; height: 520px; } .map.flat { height: 90px; } .map i { position: absolute; width: 8px; height: 8px; margin: -4px 0 0 -4px; border-radius: 50%; }
.map .c0, .map .c1, .map .c2 { width: 6px; height: 6px; margin: -3px 0 0 -3px; } .map .c0, .map .c1 { opacity: 0.7; } .map i:hover { opacity: 1; }
i.c0 { background: var(--heat-0); } i.c1 { background: var(--heat-1); } i.c2 { background: var(--heat-2); } i.c3 { background: var(--heat-3); } i.c4 { background: var(--heat-4); }
${[...Array(7).keys(), 'none'].map((kind) => `i.kind-${kind} { background: var(--kind-${kind}); }`).join(' ')} .map [class*='kind-'] { opacity: 1; }
.key i { width: 10px; height: 10px; border-radius: 50%; } .map i, .key i { print-color-adjust: exact; }
.map span { display: none; position: absolute; transform: translate(5px, -50%); font-size: 0.75rem; line-height: 1.2; white-space: nowrap; pointer-events: none;
  padding: 0 2px; border-radius: 3px; background: color-mix(in srgb, var(--panel) 80%, transparent); }
.map span.left { transform: translate(calc(-100% - 5px), -50%); } .map .on-wide { display: block; }
@media (max-width: 520px) { .map { height: 340px; } .map .on-wide { display: none; } .map .on-narrow { display: block; }
  .map i { width: 6px; height: 6px; margin: -3px 0 0 -3px; } .map .c0, .map .c1, .map .c2 { width: 4px; height: 4px; margin: -2px 0 0 -2px; } .sample div { margin-top: 10px; } }
.tip:hover, .map i:hover { z-index: 2; box-shadow: 0 0 0 2px var(--faint); }
.tip:hover::after, .map i:hover::after { content: attr(data-tip); position: absolute; top: 22px; left: 0; z-index: 2; width: max-content; max-width: 230px;
  padding: 4px 9px; border-radius: 6px; background: var(--text); color: var(--back); font: 0.8125rem/1.35 system-ui, sans-serif; white-space: pre-line; overflow-wrap: anywhere; pointer-events: none; }
.map i:hover::after { top: 12px; } .tip.left:hover::after, .map i.left:hover::after { left: auto; right: 0; }
.chart.narrow { display: none; }
@media (max-width: 520px) { .chart.wide { display: none; } .chart.narrow { display: block; } }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; width: 100%; }
th, td { text-align: left; padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--faint); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
@media (min-width: 640px) { .sample { display: grid; grid-template-columns: 1fr 1fr; column-gap: 28px; } .sample h3 { grid-column: 1 / -1; } }
details { margin-top: 8px; }
summary { cursor: pointer; color: var(--faint); }
pre { background: var(--panel); padding: 10px; border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
.warnings { background: var(--warn-back); color: var(--warn); padding: 8px 12px; border-radius: 8px; }
.warnings ul { margin: 0; padding-left: 1.2em; }
svg.plan { font: 12px system-ui, sans-serif; max-width: 100%; min-width: min(600px, 100vw); height: auto; }
@media (max-width: 700px) { svg.plan { max-width: none; width: 600px; } }
svg.plan rect { fill: var(--panel); stroke: var(--line); }
svg.plan .round rect { stroke: var(--series-0); } svg.plan .measure rect { stroke: var(--series-2); }
svg.plan text { fill: var(--text); } svg.plan .name { font-weight: 600; }
svg.plan .edge { fill: none; stroke: var(--faint); } svg.plan .back { stroke-dasharray: 5 4; } svg.plan marker path { fill: var(--faint); }
@media print { figure, pre { break-inside: avoid; } }
`;
