/**
 * Fits ratings of odd shapes, and prints {"counts", "finds"}: on the CPU the same model for other numbers of
 * workers and other orders of rows, on a GPU predictions near those of the CPU. Run by itself: node
 * scripts/torture/programs/odd-shapes.ts SEED FOLDER cpu|gpu COUNT.
 */
import { Float32, Int32, Int64, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { ALS, type AlsOptions, FactorFlowError, type Model, Session } from '../../../index.ts';
import { randomOf } from '../../../test/support/damage/mutations.ts';

interface Shape {
  readonly users: readonly number[];
  readonly items: readonly number[];
  readonly ratings: readonly number[];
  readonly ids: 'int32' | 'int64' | 'utf8';
  readonly options: AlsOptions;
}

const [, , seed, , device, count] = process.argv;
const random = randomOf(Number(seed));
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
    const [narrow, wide] = [ordered.map((id) => id * 3 - 5), ordered.map((id) => BigInt(id) * -(2n ** 40n))];
    if (ids === 'int32') return vectorFromArray(narrow, new Int32());
    if (ids === 'int64') return vectorFromArray(wide, new Int64());
    const texts = ordered.map((id) => ['', '\ufeff', 'é', ' '][id] ?? `id ${id}`);
    return vectorFromArray(texts, new Utf8());
  };
  const values = order.map((row) => ratings[row]);
  return new Table({
    user: column(users),
    item: column(items),
    rating: vectorFromArray(values, new Float32()),
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
await using second = await Session.create({ device: device as 'cpu' | 'gpu', workers: 2 });
for (let number = 0; number < Number(count); number++) {
  const one = shape();
  const name = `odd shape ${number} on ${device} (${one.users.length} ratings, ${one.ids}, ${JSON.stringify(one.options)})`;
  const find = (text: string) => void finds.push(`${name}: ${text}`);
  const order = [...one.users.keys()];
  const mixed = (row: number) => Math.imul(row, 2654435761) >>> 0;
  const shuffled = device === 'cpu' ? order.toSorted((a, b) => mixed(a) - mixed(b)) : order;
  const [here, there] = [await fitted(first, one, order), await fitted(second, one, shuffled)];
  if ('refused' in here || 'refused' in there) {
    const said = [here, there].map((outcome) => ('refused' in outcome ? outcome.refused : 'fitted'));
    if ('refused' in here !== 'refused' in there) find(`refused once only: ${JSON.stringify(said)}`);
    continue;
  }
  const { length } = here.predictions;
  if (![...here.predictions, ...there.predictions].every(Number.isFinite)) find('predictions are not finite');
  if (length !== one.users.length) find(`${length} predictions`);
  if (device === 'cpu' && here.bits !== there.bits) find('other bits for other workers and another order');
  const spread = Math.max(...one.ratings.map(Math.abs), 1e-30);
  const most = Math.max(...here.predictions.map((value, row) => Math.abs(value - there.predictions[row])));
  if (device === 'gpu' && most > 0.02 * spread)
    find(`a prediction differs by ${most}, of ratings up to ${spread}`);
}
console.log(JSON.stringify({ counts: { shapes: Number(count) }, finds }));
