import type { UpdateVariant } from '../../../gpu/update/choice/variant.ts';
import { bestVariant, iterationCell, rmseCell, type Row, type Table } from '../bench-run.ts';
import { warmUp } from '../measure.ts';

const ITERATIONS = 10;

/** Time and accuracy by number of CG steps, compared with an exact solver. */
export function stepsTable(rank: number): Table {
  return {
    name: 'steps',
    rank,
    async run(bench) {
      const { training } = bench;
      const row = (steps: number, precision: 'f32' | 'f16'): Row => {
        const variant = bestVariant(training, rank, steps, precision);
        return {
          label: steps === 0 ? `Cholesky, θ ${precision}` : String(steps),
          rank,
          steps,
          variant,
          iterations: ITERATIONS,
        };
      };
      const some = [6, 2, 3, 4, 5, 8, 10, 12, 7, 9, 11].map((steps) => row(steps, 'f16'));
      bench.head(
        `f_s, the steps of CG, rank ${rank}, θ in float16`,
        'Paper: cuMF_ALS Figure 5 and Algorithm 1: f_s = 6 is the smallest number that does not hurt convergence on Netflix at f = 100. Rows that go to dual systems (see the variant) are solved exactly for any f_s.',
        ['f_s', 'ms an iteration (users + items)', `test RMSE after ${ITERATIONS}`, 'variant'],
      );
      await bench.rows(
        [...some.slice(0, 1), row(0, 'f16'), ...some.slice(1), row(0, 'f32')],
        ({ label, variant }, measured) => [label, iterationCell(measured), rmseCell(measured), variant.name],
      );
    },
  };
}

/** Test RMSE by seconds of training. */
export function convergenceTable(rank: number): Table {
  return {
    name: 'rmse',
    rank,
    async run(bench) {
      const { training } = bench;
      bench.head(
        `Test RMSE against seconds, rank ${rank}: cumulative seconds / RMSE after each iteration, evaluation not counted`,
        'Papers: cuMF Figures 6 and 7 (RMSE 0.92 on Netflix after 30 s), cuMF_ALS Figure 6 and Table IV (6.5 s on Maxwell, 3.3 s on Pascal), other data than here.',
        ['solver', ...Array.from({ length: ITERATIONS }, (_, iteration) => String(iteration + 1)), 'variant'],
      );
      for (const [label, steps, precision] of [
        ['CG 6, θ f16', 6, 'f16'],
        ['CG 6, θ f32', 6, 'f32'],
        ['Cholesky, θ f32', 0, 'f32'],
      ] as const) {
        if (bench.timeIsUp) return bench.line(`\nTime was up before ${label}`);
        await bench.attempt(label, async () => {
          const variant = bestVariant(training, rank, steps, precision);
          const cells: string[] = [];
          let seconds = 0;
          await prepare(variant, steps);
          for (let iteration = 0; iteration < ITERATIONS && !bench.timeIsUp; iteration++) {
            seconds += (await training.iterate({ rank, steps, variant })).wall / 1000;
            cells.push(`${seconds.toFixed(3)} / ${(await training.rmse()).toFixed(4)}`);
          }
          while (cells.length < ITERATIONS) cells.push('-');
          bench.row([label, ...cells, variant.name]);
        });
      }

      /** Compiles kernels, makes row lists and raises the clock, then restarts. */
      async function prepare(variant: UpdateVariant, steps: number): Promise<void> {
        await training.restart(rank);
        await training.iterate({ rank, steps, variant });
        await warmUp(training, { rank, steps, variant });
        await training.rmse();
        await training.restart(rank);
      }
    },
  };
}
