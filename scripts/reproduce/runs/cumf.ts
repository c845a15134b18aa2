import type { PublishedRun } from './published-run.ts';

const hpdc = 'Tan, Cao, Fong, HPDC 2016 (cuMF)';
const table4 = 'cuMF_ALS, section V-C, Table IV';

/** ALS on Netflix: test RMSE against seconds. */
export const cumf: PublishedRun = {
  name: 'cumf-netflix',
  title: 'cuMF: convergence of ALS on Netflix',
  preset: 'netflix',
  about:
    'cuMF (HPDC 2016, Figures 6 and 7) draws test RMSE against seconds for f = 100 and λ = 0.05. The ratings ' +
    "here are generated in Netflix's shape, so an RMSE is not comparable with the paper's 0.92; compared are " +
    'the seconds of an iteration and the number of iterations until the test RMSE is within 1 % of its last ' +
    "value. The papers' texts state the seconds to RMSE 0.92, not those of an iteration; their curves are not " +
    'read off.',
  iterations: 10,
  flags: { rank: 100, 'reg-param': 0.05, 'no-biases': true },
  variants: [
    { label: 'Cholesky', flags: { solver: 'cholesky' } },
    { label: 'CG, 6 steps', flags: { solver: 'cg', 'cg-steps': 6 } },
  ],
  published: [
    {
      system: 'cuMF',
      hardware: 'one Titan X, 12 GB',
      figure: '30 s to RMSE 0.92',
      source: `${hpdc}, section 5.3, Figure 7`,
    },
    {
      system: 'cuMF without registers for A_u',
      hardware: 'one Titan X, 12 GB',
      figure: '75 s to RMSE 0.92',
      source: `${hpdc}, section 5.3, Figure 7`,
    },
    {
      system: 'cuMF',
      hardware: 'four Titan X',
      figure: '3.8 times as fast as one, at RMSE 0.92',
      source: `${hpdc}, section 5.4, Figure 9`,
    },
    { system: 'cuMF (GPU-ALS)', hardware: 'one Titan X', figure: '28 s to RMSE 0.92', source: table4 },
    { system: 'cuMF_ALS', hardware: 'one Titan X', figure: '6.5 s to RMSE 0.92', source: table4 },
    { system: 'cuMF_ALS', hardware: 'one Tesla P100', figure: '3.3 s to RMSE 0.92', source: table4 },
    { system: 'LIBMF (SGD)', hardware: '40 threads', figure: '23 s to RMSE 0.92', source: table4 },
    { system: 'NOMAD (SGD)', hardware: '32 machines', figure: '9.6 s to RMSE 0.92', source: table4 },
  ],
  cards: [
    {
      label: 'CG, 6 steps, θ in float16',
      result: 'rmse-seconds',
      where: { solver: 'CG 6, θ f16' },
      counted: 'iteration',
    },
    {
      label: 'Cholesky, θ in float32',
      result: 'rmse-seconds',
      where: { solver: 'Cholesky, θ f32' },
      counted: 'iteration',
    },
  ],
};
