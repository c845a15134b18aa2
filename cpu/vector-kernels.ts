/**
 * The kernels of cpu/assembly/solve/exchanged-vectors.ts. Addresses and sizes are those of Kernels; 0 stands
 * for what a row does not have.
 */
export interface VectorKernels {
  /**
   * y += Σ (θᵀp) θ over count > 0 ratings, or with `values` Σ (r - θᵀp) θ; gives Σ r θᵀp. work: 96 + 8 * size
   * bytes.
   */
  addVectorProducts(
    theta: number,
    size: number,
    indices: number,
    values: number,
    weights: number,
    count: number,
    p: number,
    y: number,
    sums: number,
    work: number,
  ): number;
  beginVectors(
    size: number,
    gram: number,
    shift: number,
    weight: number,
    gradients: number,
    scalars: number,
    sums: number,
    x: number,
    p: number,
  ): void;
  /** work: 2 * size bytes. */
  stepVectors(
    size: number,
    gram: number,
    shift: number,
    weight: number,
    gradients: number,
    scalars: number,
    sums: number,
    x: number,
    p: number,
    products: number,
    work: number,
  ): void;
  endVectors(size: number, weight: number, scalars: number, sums: number, bias: number, x: number): 0 | 1;
}
