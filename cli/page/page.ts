import { describeMachine } from '../../api/inspect/machine.ts';
import { writeWholeFile } from '../../api/output/whole-file.ts';
import type { ProfileReport } from '../../api/reports/profile.ts';
import { publicPath } from '../../engine/errors.ts';
import { withoutControls, formatBytes } from '../../engine/format.ts';
import { element, factList, table } from './document.ts';
import { figure, type Chart, barChart } from './figure.ts';
import { GENERATOR, isReport } from './report-file.ts';

/** Writes the page, with the parts that all pages have: time, machine, command. Completely or not at all. */
export async function writeReport(
  path: string,
  { title, lead, warnings, sections, adapter }: Report,
  profile: ProfileReport,
  argv: readonly string[],
): Promise<void> {
  const text = pageOf({
    title,
    lead,
    warnings,
    sections: [
      ...sections,
      ...(profile.phases.length > 1 ? [timeSection(profile)] : []),
      environmentSection(argv, adapter ?? null),
    ],
  });
  await writeWholeFile(path, text, isReport(path));
}

/** A report as one self-contained HTML page: no script, no address, no font. */
export function pageOf({ title, lead, warnings = [], sections }: Report): string {
  const notes =
    warnings.length === 0
      ? undefined
      : element(
          'div',
          { class: 'warnings', role: 'note' },
          element('ul', ...warnings.map((text) => element('li', text))),
        );
  const links = element(
    'nav',
    { 'aria-label': 'Contents' },
    element(
      'ul',
      ...sections.map(({ heading }) => element('li', element('a', { href: `#${idOf(heading)}` }, heading))),
    ),
  );
  const main = element(
    'main',
    element('h1', title),
    ...(lead ? leadOf(lead) : []),
    notes,
    ...(lead?.charts ?? []).map(figure),
    links,
    ...sections.map(sectionOf),
  );
  const titleText = element('title', title).outerHTML;
  return withoutControls(
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n${GENERATOR}\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">\n${titleText}\n<style>${style}</style>\n</head>\n<body>\n${main.outerHTML}\n</body>\n</html>\n`,
  );
}

function leadOf({ verdict: { tone, text, detail }, tiles = [] }: Lead): HTMLElement[] {
  const line = element(
    'p',
    { class: `verdict ${tone}` },
    element('strong', text),
    detail === undefined ? undefined : element('span', detail),
  );
  const numbers = tiles.map(({ name, value, remark }) =>
    element(
      'div',
      element('dt', name),
      element('dd', element('strong', value), remark === undefined ? undefined : element('span', remark)),
    ),
  );
  return [line, ...(numbers.length === 0 ? [] : [element('dl.tiles', ...numbers)])];
}

function sectionOf({ heading, text, facts, charts = [], tables = [], drawing, code }: Section): HTMLElement {
  return element(
    'section',
    { id: idOf(heading), 'aria-label': heading },
    element('h2', heading),
    text === undefined ? undefined : element('p', text),
    code === undefined ? undefined : element('pre', code),
    facts && factList(facts),
    drawing?.(),
    ...charts.map(figure),
    ...tables.flatMap(({ title, head, rows, numbers }) => [
      title === undefined ? undefined : element('h3', title),
      rows.length > 12
        ? element('details', element('summary', `${rows.length} rows`), table(head, rows, numbers))
        : table(head, rows, numbers),
    ]),
  );
}

function idOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}

/** A part of a report: a heading, then its contents in this order. */
export interface Section {
  readonly heading: string;
  readonly text?: string;
  readonly facts?: readonly (readonly [name: string, value: string | null | undefined])[];
  readonly charts?: readonly Chart[];
  readonly tables?: readonly PageTable[];
  /** A custom drawing. */
  readonly drawing?: () => HTMLElement;
  /** Monospaced text. */
  readonly code?: string;
}

export interface PageTable {
  readonly title?: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** True for columns of numbers; default: all except the first. */
  readonly numbers?: (column: number) => boolean;
}

/** The result in one line, and the numbers that lead to it. */
export interface Verdict {
  /** `good` and `bad` have a colour. */
  readonly tone: 'good' | 'bad' | 'plain';
  readonly text: string;
  readonly detail?: string | undefined;
}

/** A number on the first screen: its name, and a remark in smaller type. */
export interface Tile {
  readonly name: string;
  readonly value: string;
  readonly remark?: string | undefined;
}

/** The first screen of a page. */
interface Lead {
  readonly verdict: Verdict;
  readonly tiles?: readonly Tile[];
  readonly charts?: readonly Chart[];
}

/** The contents of a page. */
export interface Report {
  readonly title: string;
  readonly lead?: Lead | undefined;
  readonly warnings?: readonly string[] | undefined;
  /** The GPU that was used. */
  readonly adapter?: string | null;
  readonly sections: readonly Section[];
}

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

/** The wall time of the whole command by phase. */
export function timeSection({ seconds, phases }: ProfileReport): Section {
  const bars = phases.map(({ phase, seconds: own }) => ({
    name: phase,
    value: own,
    text: `${own.toFixed(2)} s`,
  }));
  const longest = phases.reduce((best, one) => (one.seconds > best.seconds ? one : best), phases[0]);
  const rows = phases.map(
    ({ phase, seconds: own, cpuSeconds, bytesRead, bytesWritten, bytesUp, bytesDown }) => [
      phase,
      own.toFixed(3),
      `${((100 * own) / seconds).toFixed(1)} %`,
      (cpuSeconds / Math.max(own, 1e-9)).toFixed(1),
      ...[bytesRead, bytesWritten, bytesUp, bytesDown].map((bytes = 0) =>
        bytes < 1024 ? '' : formatBytes(bytes),
      ),
    ],
  );
  const summary = `${seconds.toFixed(2)} s in all; most of it ${longest.phase}, ${longest.seconds.toFixed(2)} s.`;
  return {
    heading: 'Time',
    text: 'Each moment counts for one phase, so that the phases add up to the wall time of the command.',
    charts: [
      barChart('Wall time by phase', summary, bars, 2, {
        head: ['phase', 'seconds', 'share', 'cores busy', 'read', 'written', 'to devices', 'from devices'],
        rows,
      }),
    ],
  };
}

/** The machine, the versions, and the command to run again. */
export function environmentSection(argv: readonly string[], adapter: string | null): Section {
  const { versions, os, cpu, memory, webAssembly } = describeMachine();
  return {
    heading: 'Run it again',
    code: commandLine(argv),
    facts: [
      ['made', `${new Date().toISOString().slice(0, 19).replace('T', ' ')} UTC`],
      ...Object.entries(versions).map(([name, version]) => [name, version] as const),
      ['system', os],
      ['processor', `${cpu.model}, ${cpu.usable} of ${cpu.cores} threads`],
      ['memory', formatBytes(memory.limit ?? memory.total)],
      ['GPU', adapter],
      ['WebAssembly', webAssembly],
    ],
  };
}

/** The command line, quoted for a shell; credentials and queries in addresses are removed. */
function commandLine(argv: readonly string[]): string {
  return ['factorflow', ...argv.map(publicWord)]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

/** A word without the credentials of its address, which can follow a flag and "=". */
function publicWord(word: string): string {
  const [, flag = '', value = word] = /^(--[\w-]+=)(.*)$/s.exec(word) ?? [];
  return flag + publicPath(value);
}
