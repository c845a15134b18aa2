import type { UpdateVariant } from './variant.ts';

/** What one half-iteration is to do, beside its inputs. */
export interface UpdateSettings {
  readonly variant: UpdateVariant;
  readonly from: number;
  readonly to: number;
  readonly rank: number;
  readonly lambda: number;
  /** μ where there are biases. */
  readonly mean: number;
  /** 'cholesky', or so many steps of CG. */
  readonly solver: 'cholesky' | { readonly steps: number };
  /** Power of two that keeps the ratings within float16. */
  readonly scale: number;
}
