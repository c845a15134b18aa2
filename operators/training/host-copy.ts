import type { JsonObject } from '../../engine/json.ts';
import type { StoredNumbers } from '../../engine/row-parts.ts';
import type { TrainingIteration } from './iteration.ts';

/**
 * Factors in host memory after an iteration, with everything else that is needed to continue the run from
 * there.
 */
export interface HostCopy<Factors> {
  readonly iteration: number;
  readonly factors: Factors;
  /** The best factors so far, if they are of an earlier iteration than `iteration`. */
  readonly best?: { readonly iteration: number; readonly factors: Factors };
  /** All iterations so far; the stopping rule restores its state from them. */
  readonly iterations: readonly TrainingIteration[];
  /** State of the algorithm in addition to the factors. */
  readonly course?: JsonObject;
}

/** Stores copies in files, so that a run can continue in another process. */
export interface Checkpoints<Factors> {
  /** Number of iterations between two checkpoints. */
  readonly interval: number;
  /**
   * The copy from which the run continues, if any. The caller owns it: the checkpoints drop their reference,
   * so that memory holds it once.
   */
  resume(): HostCopy<Factors> | undefined;
  /** Waits until writes that were started have ended, since their memory is needed for the next copy. */
  ready(): Promise<void>;
  /** Starts to write a copy. A failed write does not end the run. */
  write(copy: HostCopy<Factors>): void;
}

/**
 * Row-major float32 matrices and vectors by name, without padding: whole, in parts of adjacent rows, or in
 * files.
 */
export type Matrices = Readonly<Record<string, Float32Array | readonly Float32Array[] | StoredNumbers>>;

export function isStored(matrix: Matrices[string]): matrix is StoredNumbers {
  return 'read' in matrix;
}

/** The parts of a matrix. Numbers in files are read. */
export function partsOfMatrix(matrix: Matrices[string]): readonly Float32Array[] {
  if (isStored(matrix)) return [matrix.read(0, matrix.length)];
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
