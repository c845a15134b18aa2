import type { UpdateVariant } from '../../gpu/update/choice/variant.ts';
import { measureColumns, measuredBy } from '../gpu/measure.ts';
import { HalfIterations, type ProblemForm } from '../gpu/training.ts';
import type { Case } from '../harness.ts';

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

const update: Case = {
  about:
    'ALS on a GPU without the engine, setting by setting: whole iterations on data that stay in place, ' +
    'their kernels, and the test RMSE after --iterations. FOLDER is of `factorflow generate`; SETTINGS ' +
    'is JSON such as ' +
    '\'[{"rank":100,"variant":"tensor-fused","change":{"partRatings":4096}},{"rank":64,"steps":0},{"rank":128,"steps":3,"form":{"alpha":10}},{"rank":64,"form":{"biases":true}}]\'.',
  words: 'FOLDER SETTINGS',
  options: { iterations: '5' },
  columns: measureColumns,
  rounds: 1,
  async *rows({ words: [folder, given = '[{"rank":100}]'], options }) {
    const training = await HalfIterations.open(folder);
    for (const line of training.description) console.error(line);
    const engines = (JSON.parse(given) as Setting[]).map((setting) => {
      const { rank, steps = 6, lambda, variant, change, form = {} } = setting;
      const iterations = setting.iterations ?? Number(options.iterations);
      const run = async () => {
        const all = training.variants(rank, steps, form, variant !== undefined);
        const found = variant === undefined ? all[0] : all.find(({ name }) => name === variant);
        if (found === undefined) throw new Error(`there are ${all.map(({ name }) => name).join(', ')}`);
        return measuredBy(training, {
          rank,
          steps,
          lambda,
          form,
          iterations,
          variant: { ...found, ...change },
        });
      };
      return [JSON.stringify(setting), run] as const;
    });
    yield { name: training.gpu.info.name, engines: Object.fromEntries(engines) };
  },
};
export default update;
