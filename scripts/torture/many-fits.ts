/**
 * Fits small models in one session, one after the other, and prints {"early", "late", "firstMs", "lastMs"}:
 * resident MiB after the first fits and at the end, and milliseconds of a fit among the first and the last: a
 * hundred of each, or a fifth of all where that is less. Run by itself: node scripts/torture/many-fits.ts
 * COUNT.
 */
import { Int32, Int64, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { ALS, Session } from '../../index.ts';
import { randomOf } from '../../test/support/damage/mutations.ts';

const RATINGS = 4000;

/** Ratings whose ids are int32, int64 or text, in turn. */
function ratingsOf(number: number): Table {
  const random = randomOf(number);
  const ids = (below: number) => Array.from({ length: RATINGS }, () => random(below));
  const column = (values: readonly number[]) => {
    if (number % 3 === 0) return vectorFromArray(values, new Int32());
    return number % 3 === 1
      ? vectorFromArray(
          values.map((value) => BigInt(value) << 33n),
          new Int64(),
        )
      : vectorFromArray(
          values.map((value) => `id ${value}`),
          new Utf8(),
        );
  };
  return new Table({
    user: column(ids(300)),
    item: column(ids(200)),
    rating: vectorFromArray(Float32Array.from({ length: RATINGS }, () => 1 + random(5))),
  });
}

const count = Number(process.argv[2]);
const tables = [ratingsOf(0), ratingsOf(1), ratingsOf(2)];
await using session = await Session.create({ device: 'cpu', workers: 2 });
const [resident, times]: [number[], number[]] = [[], []];
for (let fit = 0; fit < count; fit++) {
  const started = performance.now();
  const model = await new ALS({ rank: 8, maxIter: 2, seed: fit }).fit(session.from(tables[fit % 3].batches));
  await model.close();
  times.push(performance.now() - started);
  resident.push(process.memoryUsage.rss() / 2 ** 20);
}
const some = Math.max(1, Math.min(100, Math.floor(count / 5)));
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const rounded = (value: number) => Math.round(10 * value) / 10;
console.log(
  JSON.stringify({
    fits: count,
    early: rounded(resident[some - 1]),
    late: rounded(resident[count - 1]),
    firstMs: rounded(mean(times.slice(0, some))),
    lastMs: rounded(mean(times.slice(-some))),
  }),
);
