/**
 * The gain of each technique of ALS on a GPU: Markdown tables (bench/results/als-techniques.json), each with
 * the paper's figure for comparison. A data set from `factorflow generate` is loaded once; tables are printed
 * as they are completed.
 *
 *     node bench/gpu/ablation.ts FOLDER [--tables tensor,techniques] [--ranks 100,64] [--seconds 200] [--output FILE]
 *
 * Tables: rmse, steps, tensor, techniques, solvers, ranks; default: all of them, in this order, first for the
 * first rank and then for the others. `--ranks` replaces each table's own ranks. Tables that do not fit in
 * `--seconds` are left out.
 */
import { parseArgs } from 'node:util';
import { describeMachine } from '../machine.ts';
import { chosenTables } from './tables/bench-report.ts';
import { BenchRun, type Table } from './bench-run.ts';
import { convergenceTable, stepsTable } from './tables/convergence-tables.ts';
import { HalfIterations } from './half-iterations.ts';
import { ranksTable } from './tables/ranks-table.ts';
import { solversTable } from './tables/solvers-table.ts';
import { techniquesTable } from './tables/techniques-table.ts';
import { tensorTable } from './tables/tensor-table.ts';

const RANKS = [100, 200, 128, 64, 90, 80, 70, 60, 50, 40, 30, 20, 10];

/** The parts of each table, most important first. */
const parts: Readonly<Record<string, (ranks?: readonly number[]) => readonly Table[]>> = {
  rmse: ([rank] = [100]) => [convergenceTable(rank)],
  steps: ([rank] = [100]) => [stepsTable(rank)],
  tensor: (ranks = [100, 64, 128, 200]) => ranks.map(tensorTable),
  // At rank 10 several rows share a workgroup.
  techniques: (ranks = [100, 64, 10]) => ranks.map(techniquesTable),
  solvers: ([rank] = [100]) => [solversTable(rank)],
  ranks: (ranks = RANKS) => [ranksTable(ranks)],
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tables: { type: 'string', default: Object.keys(parts).join(',') },
    ranks: { type: 'string' },
    seconds: { type: 'string', default: '200' },
    output: { type: 'string' },
  },
});
const { folder, names } = chosenTables(positionals[0], values.tables, parts);
const ranks = values.ranks?.split(',').map(Number);
const chosen = names.map((name) => parts[name](ranks));
const tables = [...chosen.flatMap((own) => own.slice(0, 1)), ...chosen.flatMap((own) => own.slice(1))];

const bench = new BenchRun(await HalfIterations.open(folder), {
  seconds: Number(values.seconds),
  output: values.output,
});
bench.line(describeMachine());
for (const line of bench.training.description) bench.line(line);
await bench.tables(
  tables.map((table) => ({ name: `${table.name}, rank ${table.rank}`, run: () => table.run(bench) })),
);
process.exit(0);
