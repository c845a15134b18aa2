/** docs/measured/performance.md: the results of bench/results/ as tables, one number a cell. */
import {
  type Cell,
  type Column,
  type Machine,
  readMachines,
  readSubjects,
  type Result,
  type Subject,
} from './results.ts';

const introduction = `# Performance

Measured figures, with machine, day and command. Speed on another machine differs: run the same command there.
\`npm run docs\` makes this page of \`bench/results/*.json\`, which have all runs, ranges and further results by the
names in code type. A cell has the median of its runs. *takes* is the part of the other's time (below 1: faster);
*times as fast* is its inverse. Commits of builds were not noted before 2026-11-27. Ideas that were tried and not
kept are in [decisions](../decisions/README.md).
`;

export function performancePage(root: string): string {
  const subjects = readSubjects(root);
  return [introduction, machineTable(readMachines(root)), ...subjects.map(part)].join('\n');
}

function machineTable(machines: Readonly<Record<string, Machine>>): string {
  const rows = Object.entries(machines).map(([name, { hardware, system, node, driver }]) => [
    name,
    hardware,
    `${system}, Node ${node}${driver === undefined ? '' : `, driver ${driver}`}`,
  ]);
  return table(['machine', 'hardware', 'system'], rows);
}

function part({ subject, title, about, results }: Subject): string {
  const shown = results.filter((result) => result.shown);
  const others = results.filter((result) => !result.shown).map(({ id, title }) => `${title} (\`${id}\`)`);
  const more = others.length === 0 ? '' : ` Also in \`bench/results/${subject}.json\`: ${others.join('; ')}.`;
  return [`## ${title}\n\n${about}${more}\n`, ...shown.map(section)].join('\n');
}

function section(result: Result): string {
  const { id, title, columns, rows, shown, meaning, decisions = [] } = result;
  const cells = rows.slice(0, typeof shown === 'number' ? shown : undefined).map((row) => row.map(shownCell));
  const links = decisions.map((name) => `[${name}](../decisions/${name}.md)`);
  const tried = links.length === 0 ? '' : ` Tried: ${links.join(', ')}.`;
  const figures = table(columns.map(heading), cells);
  return `### ${title}\n\n${figures}\n${meaning}${tried} (\`${id}\`: ${origin(result)}.)\n`;
}

/** Day, machine, data and the first command. */
function origin({ date, machine, conditions, data, commands }: Result): string {
  const place = [date, machine, conditions, data].filter((text) => text !== undefined).join('; ');
  return `${place}; ${commands.length === 0 ? 'its command was not noted' : `\`${commands[0]}\``}`;
}

function heading({ name, unit }: Column): string {
  return unit === undefined || unit === 'ratio' ? name : `${name}, ${unit}`;
}

/** The median of runs; a range only where there is nothing else. */
export function shownCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'number') return numberText(cell);
  if ('range' in cell) {
    return cell.value === undefined ? cell.range.map(numberText).join(' to ') : numberText(cell.value);
  }
  return numberText(median(cell));
}

function median(runs: readonly number[]): number {
  const sorted = [...runs].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle];
  return Number(((sorted[middle - 1] + sorted[middle]) / 2).toPrecision(6));
}

function numberText(value: number): string {
  return Math.abs(value) >= 10_000 ? value.toLocaleString('en-US') : String(value);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return `${[line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')}\n`;
}
