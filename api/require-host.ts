/**
 * Rejects environments in which FactorFlow cannot run. The first import of index.ts, so that no other module
 * runs before it.
 */
import { UsageError } from '../engine/errors.ts';
import { unfitNode } from './node-version.ts';

declare const __webpack_require__: unknown;

const problem = unfitNode();
if (problem !== undefined) throw new UsageError(`FactorFlow ${problem}`);

// webpack (and ncc) define this name. In the output of other bundlers, import.meta.url is the bundle's own
// address, or undefined.
if (
  typeof __webpack_require__ !== 'undefined' ||
  !/\/(api|programs\/chunks)\/require-host[\w-]*\.[jt]s(\?|$)/.test(String(import.meta.url))
) {
  throw new UsageError('FactorFlow was put into a bundle, where it cannot find the files of its threads', {
    advice:
      "Leave the package factorflow out of the bundle: it is external: ['factorflow'] for esbuild, Rollup and Vite, and docs/bundlers.md has the others",
  });
}
