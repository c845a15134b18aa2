/**
 * The Python packages of bench/quality/time-to-quality.ts, and the settings that it tries for each library.
 */
export type Kind = 'explicit' | 'implicit';
export type Settings = Readonly<Record<string, string | number | boolean>>;

/** The last one builds without an environment of its own. */
export const packages = [
  'numpy==2.4.6',
  'scipy==1.17.1',
  'pandas==3.1.1',
  'pyarrow==26.0.1',
  'implicit==0.7.3',
  'cmfrec==3.5.1.post14',
  'scikit-surprise==1.1.5',
  'libmf==0.9.2',
];

const product = (...axes: readonly (readonly Settings[])[]): Settings[] =>
  axes.reduce<Settings[]>(
    (all, axis) => all.flatMap((some) => axis.map((more) => ({ ...some, ...more }))),
    [{}],
  );
const axis = (name: string, ...values: readonly (string | number | boolean)[]): Settings[] =>
  values.map((value) => ({ [name]: value }));

/** By kind of data and library; FactorFlow's are options of `factorflow train`. */
export const grids: Readonly<Record<Kind, Readonly<Record<string, readonly Settings[]>>>> = {
  explicit: {
    FactorFlow: [
      ...product(axis('algorithm', 'als'), axis('reg-param', 0.02, 0.04, 0.06), axis('reg-offset', 7)),
      ...product(axis('algorithm', 'sgd'), axis('decay', 0.1, 0.2, 0.3)),
    ],
    cmfrec: [
      ...product(axis('lambda_', 10), axis('use_cg', true)),
      ...product(axis('lambda_', 0.1, 0.15, 0.2), axis('scale_lam', true), axis('use_cg', true, false)),
    ],
    'Surprise SVD': product(axis('lr_all', 0.01, 0.02), axis('reg_all', 0.05, 0.1, 0.15)),
    libmf: product(axis('eta', 0.05, 0.1), axis('lambda', 0.07, 0.1, 0.15)),
  },
  implicit: {
    FactorFlow: product(
      axis('alpha', 20, 60, 180),
      axis('reg-param', 10, 20, 60),
      axis('solver', 'cg'),
      axis('cg-steps', 3),
    ),
    implicit: product(axis('alpha', 20, 60, 180), axis('regularization', 10, 30, 100), axis('use_cg', true)),
    cmfrec: product(axis('alpha', 20, 60, 180), axis('lambda_', 10, 30, 100), axis('use_cg', true)),
  },
};
