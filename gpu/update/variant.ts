/** How the rows of a half-iteration are summed and solved. */
export interface UpdateVariant {
  readonly name: string;
  /** What θ is gathered as. */
  readonly precision: 'f32' | 'f16';
  /** Ratings staged at a time. */
  readonly bin: number;
  /** Bins gathered ahead. */
  readonly depth: number;
  /** A/n as float16 while it is solved. */
  readonly halfA: boolean;
  /** Rows of up to `longest` ratings are solved in the kernel that sums them; `workgroups` walk the list. */
  readonly fused?: { readonly longest: number; readonly prefetch: boolean; readonly workgroups: number };
}
