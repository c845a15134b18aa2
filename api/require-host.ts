/** Refuses hosts that FactorFlow cannot run on. The first import of index.ts, so that no other module runs before it. */
import { UsageError } from '../engine/errors.ts';
import { tooOldNode } from '../engine/node-version.ts';

declare const __webpack_require__: unknown;

const problem = tooOldNode(process.versions.node);
if (problem !== undefined) throw new UsageError(`FactorFlow ${problem}`);

// Of webpack (and ncc), then of the others, where this address is the bundle's or none.
if (typeof __webpack_require__ !== 'undefined' || !/\/require-host\.[jt]s(\?|$)/.test(String(import.meta.url))) {
  throw new UsageError('FactorFlow was put into a bundle, where it cannot find the files of its threads', {
    advice: "Leave the package factorflow out of the bundle: it is external: ['factorflow'] for esbuild, Rollup and Vite, and docs/bundlers.md has the others",
  });
}
