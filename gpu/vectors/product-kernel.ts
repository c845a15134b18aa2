import { reads, writes } from '../webgpu/kernel.ts';

/**
 * Bindings and uniforms of the kernels that multiply the ratings of parts of rows by the rows' vectors. They
 * write one sum for each part, to its slot (layout: vectors.ts). An entry of `work` is a part: row of
 * `vectors`, first rating, number of ratings, slot. `alpha` and `base` are the weights of implicit data.
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
