import type { JsonObject } from '../../engine/json.ts';
import type { TrainingIteration } from './iteration.ts';

/**
 * Factors in host memory, and the state of the run after their iteration: everything needed to continue the
 * run.
 */
export interface HostCopy<Factors> {
  readonly iteration: number;
  readonly factors: Factors;
  /** The best factors so far, if an earlier iteration made them. */
  readonly best?: { readonly iteration: number; readonly factors: Factors };
  /** All iterations so far; the stopping rule restores its state from them. */
  readonly iterations: readonly TrainingIteration[];
  /** State of the algorithm in addition to the factors. */
  readonly course?: JsonObject;
}

/** Copies that survive the process. */
export interface Checkpoints<Factors> {
  /** Number of iterations between two checkpoints. */
  readonly interval: number;
  /** Returns the copy that the run continues from, if any, and drops it, so that memory holds one copy. */
  resume(): HostCopy<Factors> | undefined;
  /** Waits until started writes have ended, so that there is memory for the next copy. */
  ready(): Promise<void>;
  /** Starts to write a copy. A failed write does not end the run. */
  write(copy: HostCopy<Factors>): void;
}

/** Row-major float32 matrices and vectors by name, without padding: whole, or in parts of adjacent rows. */
export type Matrices = Readonly<Record<string, Float32Array | readonly Float32Array[]>>;

/** The parts of a matrix. */
export function partsOfMatrix(matrix: Matrices[string]): readonly Float32Array[] {
  return matrix instanceof Float32Array ? [matrix] : matrix;
}

/** Adapts checkpoints of matrices to an algorithm's factors. */
export function checkpointsOf<Factors>(
  checkpoints: Checkpoints<Matrices> | undefined,
  toMatrices: (factors: Factors) => Matrices,
  fromMatrices: (matrices: Matrices) => Factors,
): Checkpoints<Factors> | undefined {
  if (checkpoints === undefined) return undefined;
  const resume = () => {
    const copy = checkpoints.resume();
    return copy && withFactors(copy, fromMatrices);
  };
  return {
    interval: checkpoints.interval,
    resume,
    ready: () => checkpoints.ready(),
    write: (copy) => checkpoints.write(withFactors(copy, toMatrices)),
  };
}

function withFactors<From, To>(
  { factors, best, ...state }: HostCopy<From>,
  change: (factors: From) => To,
): HostCopy<To> {
  return {
    ...state,
    factors: change(factors),
    ...(best && { best: { iteration: best.iteration, factors: change(best.factors) } }),
  };
}
