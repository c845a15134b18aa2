/**
 * Runs pipelines of all kinds in one session with little memory, one after the other, some of them left
 * early or cancelled. Prints {"counts", "finds"}: growth of resident memory, open files and threads after the first
 * fifth, and operators that fail on columns with odd names. Run by itself:
 * node scripts/torture/programs/many-pipelines.ts SEED FOLDER COUNT.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { col, count, type Dataset, Session } from '../../../index.ts';
import { randomOf } from '../../../test/support/damage/mutations.ts';

const ROWS = 100_000;

/** Names of columns that programs tend to get wrong. */
const names = 'plain a.b a"b a\'b a`b a,b * ü 0 null and length constructor __proto__'.split(' ');
names.push('', ' ', '\n');

const [seed, folder, total] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
const random = randomOf(seed);
const file = (name: number) => join(folder, `${name}.parquet`);
const finds: string[] = [];
{
  await using writer = await Session.create({ device: 'cpu', workers: 2 });
  for (const [i, name] of names.entries()) {
    const rows = Array.from({ length: ROWS }, (_, row) => ({ k: `k${row}`, [name]: row % 1000 }));
    await writer.fromRows(rows).write.parquet(file(i), { rowGroupSize: ROWS / 4 });
  }
}
await using session = await Session.create({
  device: 'cpu',
  workers: 2,
  memoryBudget: '420MiB',
  splitBytes: 1 << 18,
});

/** Pipelines, and the rows that each gives. */
const pipelines: readonly (readonly [(rows: Dataset, name: string) => Dataset, number])[] = [
  [(rows, name) => rows.join(rows.select('k', col(name).as('other')), 'k'), ROWS],
  [(rows, name) => rows.filter(col(name).lt(500)), ROWS / 2],
  [(rows, name) => rows.groupBy(name).agg(count().as('n')), 1000],
  [(rows, name) => rows.orderBy(col(name).desc()), ROWS],
  [(rows, name) => rows.dropNulls(name).dropDuplicates(name), 1000],
  [(rows, name) => rows.repartition(3, name).select(name), ROWS],
  [(rows) => rows.union(rows.filter(col('k').isNotNull())), 2 * ROWS],
  [(rows) => rows.join(rows.limit(5).select('k'), 'k', 'semi'), 5],
];

/** Resources of this process, and the most that each may grow. */
function held(): readonly (readonly [what: string, number: number, most: number])[] {
  const entries = (name: string) =>
    process.platform === 'linux' ? readdirSync(`/proc/self/${name}`).length : 0;
  return [
    ['MiB resident', Math.round(process.memoryUsage.rss() / 2 ** 20), 150],
    ['open files', entries('fd'), 10],
    ['threads', entries('task'), 10],
  ];
}

async function run(number: number): Promise<void> {
  const at = number % names.length;
  const [make, expected] = pipelines[random(pipelines.length)];
  const rows = make(session.read.parquet(file(at)), names[at]);
  const end = random(4);
  const controller = new AbortController();
  let found = 0;
  try {
    for await (const batch of await rows.stream({ signal: controller.signal })) {
      found += batch.numRows;
      if (end === 0) break;
      if (end === 1) controller.abort();
    }
    if (end > 1 && found !== expected)
      finds.push(`${found} rows in place of ${expected}, column ${names[at]}`);
  } catch (error) {
    if (!controller.signal.aborted) finds.push(`column "${names[at]}", ${String(make)}: ${String(error)}`);
  }
}

let first = held();
for (let number = 0; number < total; number++) {
  await run(number);
  if (number === Math.floor(total / 5)) first = held();
}
for (const [i, [what, number, most]] of held().entries())
  if (number - first[i][1] > most) finds.push(`${first[i][1]} ${what}, then ${number}`);
console.log(JSON.stringify({ counts: { pipelines: total }, finds }));
