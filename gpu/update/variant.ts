/** How the rows of a half-iteration are summed and solved. */
export interface UpdateVariant {
  readonly name: string;
  /** What θ is gathered as. */
  readonly precision: 'f32' | 'f16';
  /** Ratings staged at a time. */
  readonly bin: number;
  /** Bins gathered ahead. */
  readonly depth: number;
  /** Whether rows are touched before they are gathered. */
  readonly touch: boolean;
  /** Long rows are cut and ordered by regions of θ of so many bytes, which the GPU's cache then holds; 0: not. */
  readonly regionBytes: number;
  /** A/n as float16 while it is solved. */
  readonly halfA: boolean;
  /** Rows of up to `longest` ratings are solved in the kernel that sums them; `workgroups` walk the list. */
  readonly fused?: { readonly longest: number; readonly prefetch: boolean; readonly touchNext: boolean; readonly workgroups: number };
  /** Rows of up to so many ratings (32 or 64) are solved by their dual systems; 0: none are. */
  readonly short: number;
}
