/**
 * Fits small models in one session, one after the other, and prints {"counts", "finds", "early", "late"}:
 * resident MiB after the first fits (a hundred, or a fifth of all) and at the end. Run by itself:
 * node test/support/many-fits.ts SEED FOLDER COUNT.
 */
import { Int32, Int64, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { ALS, Session } from '../../index.ts';
import { randomOf } from './damage/mutations.ts';

const RATINGS = 4000;
const MOST_MIB = 600;

/** Ratings whose ids are int32, int64 or text, in turn. */
function ratingsOf(number: number): Table {
  const random = randomOf(number);
  const column = (below: number) => {
    const values = Array.from({ length: RATINGS }, () => random(below));
    if (number === 0) return vectorFromArray(values, new Int32());
    const [wide, texts] = [values.map((value) => BigInt(value) << 33n), values.map((value) => `id ${value}`)];
    return number === 1 ? vectorFromArray(wide, new Int64()) : vectorFromArray(texts, new Utf8());
  };
  return new Table({
    user: column(300),
    item: column(200),
    rating: vectorFromArray(Float32Array.from({ length: RATINGS }, () => 1 + random(5))),
  });
}

const count = Number(process.argv[4]);
const tables = [0, 1, 2].map(ratingsOf);
await using session = await Session.create({ device: 'cpu', workers: 2 });
const resident: number[] = [];
for (let fit = 0; fit < count; fit++) {
  const model = await new ALS({ rank: 8, maxIter: 2, seed: fit }).fit(session.from(tables[fit % 3].batches));
  await model.close();
  resident.push(Math.round(process.memoryUsage.rss() / 2 ** 20));
}
const early = resident[Math.max(1, Math.min(100, Math.floor(count / 5))) - 1];
const late = resident[count - 1];
const finds = late > MOST_MIB ? [`${count} small fits: ${late} MiB resident`] : [];
console.log(JSON.stringify({ counts: { fits: count }, finds, early, late }));
