import { reads, writes } from '../webgpu/kernel.ts';

/**
 * Bindings and uniforms of all kernels that multiply parts of rows by the rows' vectors and write the
 * results to the parts' slots (vectors.ts). An entry of `work`: row of the vectors, first rating, ratings,
 * slot. `alpha` and `base` are the weights of implicit data.
 */
export const productBindings = [
  ...reads({
    work: 'array<vec4u>',
    indices: 'array<u32>',
    values: 'array<f32>',
    fixed: 'array<{{ stored }}>',
    vectors: 'array<vec4f>',
  }),
  ...writes({ slots: 'array<vec4f>' }),
];

export const productUniforms = { count: 'u32', alpha: 'f32', base: 'f32' } as const;
