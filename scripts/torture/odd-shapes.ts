/**
 * Fits ratings of odd shapes, and prints {"shapes", "finds"}: on the CPU the same model for other numbers of
 * workers and other orders of rows, on a GPU predictions near those of the CPU. Run by itself: node
 * scripts/torture/odd-shapes.ts cpu|gpu SEED COUNT.
 */
import { Float32, Int32, Int64, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { ALS, type AlsOptions, FactorFlowError, type Model, Session } from '../../index.ts';
import { randomOf } from '../../test/support/damage/mutations.ts';

interface Shape {
  readonly users: readonly number[];
  readonly items: readonly number[];
  readonly ratings: readonly number[];
  readonly ids: 'int32' | 'int64' | 'utf8';
  readonly options: AlsOptions;
}

const [device, seed, count] = [
  process.argv[2] as 'cpu' | 'gpu',
  Number(process.argv[3]),
  Number(process.argv[4]),
];
const random = randomOf(seed);
const pick = <T>(values: readonly T[]): T => values[random(values.length)];

function shape(): Shape {
  const [m, n] = [pick([1, 2, 3, 17, 64, 65, 1000]), pick([1, 2, 5, 16, 63, 129, 700])];
  const rows = pick([1, 2, m, n, m + n, Math.min(5000, m * n), Math.min(5000, 3 * m * n)]);
  const scale = pick([1e-3, 1, 1, 1, 1e4]);
  const level = pick([0, 0, 3, -100]);
  const isConstant = random(6) === 0;
  const long = random(3) === 0;
  const of = <T>(make: () => T) => Array.from({ length: rows }, make);
  const implicitPrefs = random(4) === 0;
  return {
    users: of(() => (long && random(2) === 0 ? 0 : random(m))),
    items: of(() => random(n)),
    ratings: of(() =>
      implicitPrefs ? 1 + random(20) : isConstant ? scale : scale * (level + random(9) / 2),
    ),
    ids: pick(['int32', 'int64', 'utf8']),
    options: {
      rank: pick([1, 2, 7, 8, 9, 33]),
      maxIter: 1 + random(3),
      seed: random(99),
      ...(implicitPrefs ? { implicitPrefs } : { biases: random(3) > 0 }),
    },
  };
}

function tableOf({ users, items, ratings, ids }: Shape, order: readonly number[]): Table {
  const column = (values: readonly number[]) => {
    const ordered = order.map((row) => values[row]);
    if (ids === 'int32')
      return vectorFromArray(
        ordered.map((id) => id * 3 - 5),
        new Int32(),
      );
    return ids === 'int64'
      ? vectorFromArray(
          ordered.map((id) => BigInt(id) * -(2n ** 40n)),
          new Int64(),
        )
      : vectorFromArray(
          ordered.map((id) => ['', '\ufeff', 'é', ' '][id] ?? `id ${id}`),
          new Utf8(),
        );
  };
  return new Table({
    user: column(users),
    item: column(items),
    rating: vectorFromArray(
      order.map((row) => ratings[row]),
      new Float32(),
    ),
  });
}

/** The model's predictions of its own ratings, or the error. */
async function fitted(
  session: Session,
  one: Shape,
  order: readonly number[],
): Promise<{ readonly predictions: Float32Array; readonly bits: string } | { readonly refused: string }> {
  let model: Model | undefined;
  try {
    model = await new ALS(one.options).fit(session.from(tableOf(one, order).batches));
    const rows = model.predict(session.from(tableOf(one, [...one.users.keys()]).batches));
    const parts: number[] = [];
    for await (const batch of rows)
      parts.push(...((batch.getChild('prediction')?.toArray() ?? []) as Float32Array));
    const bits = [model.userArrays, model.itemArrays]
      .map(({ values }) => Buffer.from(values.slice().buffer).toString('base64'))
      .join();
    return { predictions: Float32Array.from(parts), bits };
  } catch (error) {
    if (error instanceof FactorFlowError) return { refused: error.message };
    throw error;
  } finally {
    await model?.close();
  }
}

const finds: string[] = [];
await using first = await Session.create({ device: 'cpu', workers: 1 });
await using second = await Session.create({ device, workers: 2 });
for (let number = 0; number < count; number++) {
  const one = shape();
  const name = `odd shape ${number} of seed ${seed} on ${device} (${one.users.length} ratings, ${one.ids}, ${JSON.stringify(one.options)})`;
  const order = [...one.users.keys()];
  const shuffled =
    device === 'cpu'
      ? order.toSorted((a, b) => (Math.imul(a, 2654435761) >>> 0) - (Math.imul(b, 2654435761) >>> 0))
      : order;
  const [here, there] = [await fitted(first, one, order), await fitted(second, one, shuffled)];
  if ('refused' in here || 'refused' in there) {
    if ('refused' in here !== 'refused' in there)
      finds.push(
        `${name}: refused once only: ${JSON.stringify([here, there].map((outcome) => ('refused' in outcome ? outcome.refused : 'fitted')))}`,
      );
    continue;
  }
  if (![...here.predictions, ...there.predictions].every(Number.isFinite))
    finds.push(`${name}: predictions are not finite`);
  if (here.predictions.length !== one.users.length)
    finds.push(`${name}: ${here.predictions.length} predictions`);
  if (device === 'cpu' && here.bits !== there.bits)
    finds.push(`${name}: other bits for other workers and another order`);
  const spread = Math.max(...one.ratings.map(Math.abs), 1e-30);
  const most = here.predictions.reduce(
    (worst, value, row) => Math.max(worst, Math.abs(value - there.predictions[row])),
    0,
  );
  if (device === 'gpu' && most > 0.02 * spread)
    finds.push(`${name}: a prediction differs by ${most}, of ratings up to ${spread}`);
}
console.log(JSON.stringify({ shapes: count, finds }));
