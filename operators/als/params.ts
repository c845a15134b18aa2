import { commonParams, type CommonParams } from '../params/common.ts';
import { checkParams, defaultsOf, type ParamTable } from '../params/table.ts';

/** Parameters of explicit ALS with weighted-λ regularization. */
export interface AlsParams extends CommonParams {
  /** Solver of A x = b: exact (`cholesky`), f_s steps of conjugate gradients (`cg`), or one of both for each row (`auto`). */
  readonly solver: 'auto' | 'cholesky' | 'cg';
  /** f_s of cuMF_ALS, Algorithm 1. */
  readonly cgSteps: number;
  /** True keeps all factors >= 0, exactly, by non-negative least squares. Biases are not bounded. Not with solver `cg`. */
  readonly nonnegative: boolean;
  /**
   * The users that the first iteration solves items from, of unit norm: `spark`'s zero-mean Gaussian rows take 10 to 25 iterations to
   * find the level of positive ratings; `level` takes their absolute values, which have it after one. Biases hold the level themselves.
   */
  readonly start: 'spark' | 'level';
  /** Name of the GPU kernel that solves the rows; without it the device chooses. */
  readonly kernel?: string;
}

export const alsTable: ParamTable<AlsParams> = {
  algorithm: 'ALS',
  params: {
    ...commonParams,
    solver: { kind: 'choice', help: 'solve rows exactly, by conjugate gradients, or by the faster of the two', choices: ['auto', 'cholesky', 'cg'], fallback: 'auto' },
    cgSteps: { kind: 'whole number', help: 'steps of conjugate gradients a row', least: 1, most: 1000, fallback: 6 },
    nonnegative: { kind: 'toggle', help: 'keep all factors at 0 or above (biases are free); on the CPU', fallback: false },
    start: { kind: 'choice', help: "users to begin with: Spark's Gaussian rows, or their absolute values, which find the ratings' level at once", choices: ['spark', 'level'], fallback: 'spark' },
    kernel: { kind: 'text', help: "GPU kernel that solves the rows; without it the device's choice", meaning: 'the name of a GPU kernel' },
  },
  rules: [
    { refused: 'solver', when: ({ solver, nonnegative }) => nonnegative && solver === 'cg', message: (named) => `${named('solver', 'cg')} cannot act with ${named('nonnegative')}: conjugate gradients do not keep factors >= 0`, advice: 'Leave the solver at auto, or leave nonnegative out' },
    { refused: 'start', when: ({ start, biases }) => start === 'level' && biases, message: (named) => `${named('start', 'level')} does nothing with ${named('biases')}, which hold the level`, advice: 'Leave one of them out' },
    { refused: 'cgSteps', when: ({ nonnegative }) => nonnegative, message: (named) => `${named('cgSteps')} does nothing with ${named('nonnegative')}`, advice: 'Leave one of them out', onlyFlags: true },
    { refused: 'cgSteps', when: ({ solver }) => solver === 'cholesky', message: (named) => `${named('cgSteps')} does nothing with ${named('solver', 'cholesky')}`, advice: 'Leave one of them out', onlyFlags: true },
  ],
};

export const alsDefaults: AlsParams = defaultsOf(alsTable);

/** The parameters with defaults filled in; throws UsageError naming parameter and value. */
export function checkAlsParams(given: Partial<AlsParams>, others?: readonly string[]): AlsParams {
  return checkParams(alsTable, given, others);
}
