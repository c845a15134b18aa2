/**
 * Times the update kernels on a GPU, variant by variant: whole iterations of ALS without evaluation, on data
 * that stay in place, and the test RMSE after them for explicit problems.
 *
 *     node bench/gpu/update.ts FOLDER '[{"rank":100,"variant":"tensor-fused","change":{"partRatings":4096}}]' [iterations = 5]
 *     node bench/gpu/update.ts FOLDER '[{"rank":128,"steps":3,"form":{"alpha":10}},{"rank":64,"form":{"biases":true}},{"rank":64,"steps":0,"form":{"nonnegative":true}}]'
 */
import type { UpdateVariant } from '../../gpu/update/choice/variant.ts';
import { HalfIterations, type ProblemForm } from './half-iterations.ts';
import { measure } from './measure.ts';

interface Setting {
  readonly rank: number;
  /** CG steps; 0 for Cholesky. */
  readonly steps?: number;
  readonly lambda?: number;
  readonly iterations?: number;
  /** Name; default: the best variant by rule. */
  readonly variant?: string;
  /** Changes to it. */
  readonly change?: Partial<UpdateVariant>;
  readonly form?: ProblemForm;
}

const [folder, given, count = '5'] = process.argv.slice(2);
const settings = JSON.parse(given) as Setting[];
const training = await HalfIterations.open(folder);
for (const line of training.description) console.log(line);
for (const setting of settings) {
  try {
    await bench(setting);
  } catch (error) {
    console.log(
      `${JSON.stringify(setting)}: ${error instanceof Error ? error.message.slice(0, 600) : String(error)}`,
    );
  }
}
process.exit(0);

async function bench({
  rank,
  steps = 6,
  lambda,
  iterations = Number(count),
  variant: name,
  change,
  form = {},
}: Setting): Promise<void> {
  const variants = training.variants(rank, steps, form, name !== undefined);
  const found = name === undefined ? variants[0] : variants.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there are ${variants.map((one) => one.name).join(', ')}`);
  const { wall, low, high, first, kernels, rmse, bad, once } = await measure(training, {
    rank,
    steps,
    lambda,
    iterations,
    variant: { ...found, ...change },
    form,
  });
  for (const row of bad) console.log(`  bad ${row}`);
  const detail = Object.entries(kernels)
    .map(([kernel, ms]) => `${kernel} ${ms.toFixed(2)}`)
    .join(', ');
  console.log(
    `rank ${rank} ${steps === 0 ? 'cholesky' : `cg ${steps}`} ${found.name} ${JSON.stringify({ ...form, ...change })}: ${once ? 'once' : 'median'} ${wall.toFixed(2)} ms (${low.toFixed(2)}-${high.toFixed(2)}), first ${first.toFixed(0)} | ${detail} ${form.biases === true || form.alpha !== undefined ? '' : `| test RMSE ${rmse.toFixed(4)} after ${iterations}`}`,
  );
}
