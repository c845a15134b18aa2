import type { NormalEquationsParams } from '../kernels/normal-equations/normal-equations.ts';

/** How A and b of rows that are not solved where they are summed come to their slots. */
export type SumKernel =
  | { readonly kernel: 'tensor'; readonly bin: number }
  | ({ readonly kernel: 'tiled' } & Omit<NormalEquationsParams, 'rank' | 'precision' | 'biases'>);

/** One way to solve the rows of a half-iteration; the name is what plans, models and `--kernel` say. */
export interface UpdateVariant {
  readonly name: string;
  /** What θ is gathered as; sums are float32. */
  readonly precision: 'f32' | 'f16';
  readonly sum: SumKernel;
  /** Rows of up to `longest` ratings are solved by CG in the kernel that sums them, on tensor cores; `workgroups` walk the list. */
  readonly fused?: { readonly bin: number; readonly longest: number; readonly workgroups: number };
  /** Rows of up to so many ratings (32 or 64) are solved by their dual systems on tensor cores; 0: none are. */
  readonly short: number;
  /** Whether rows short enough for workgroup memory are solved by CG without A. */
  readonly free: boolean;
  /** Whether CG sees A/n rounded to float16 (cuMF_ALS, section 4.2). */
  readonly halfA: boolean;
  /** CG with A in the registers of a workgroup, which wants subgroups; else the portable one. */
  readonly registers: boolean;
  /** Rows of more ratings are cut into parts. */
  readonly partRatings: number;
  /** Long rows are cut and ordered by regions of θ of so many bytes, which the GPU's cache then holds; 0: not. */
  readonly regionBytes: number;
  /** Whether rows are taken by falling length; off only to show what it gains. */
  readonly sorted: boolean;
}

/** What the choice of a variant depends on: plain data, see operators/kernel-choices.ts. */
export interface UpdateProblem {
  /** f, with biases one more. */
  readonly rank: number;
  readonly solver: 'cg' | 'cholesky';
  readonly cgSteps: number;
  readonly precision: 'auto' | 'f32' | 'f16';
  readonly biases: boolean;
  /** Rows that are solved, and rows of θ. */
  readonly rows: number;
  readonly columns: number;
  readonly ratings: number;
  /** Of the run, at most. */
  readonly iterations: number;
  /** Ratings of the longest row. */
  readonly longest: number;
  /** Largest |rating|. */
  readonly largestRating: number;
  /** A variant's name, asked for. */
  readonly kernel?: string;
}

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
