/**
 * Writes dist/page/index.js, the entry factorflow/browser: one module without static imports, which a page
 * loads from any file server and every bundler takes. It loads two more modules of that folder if they are
 * needed: page-gpu.js for WebGPU, and page-worker.js in each thread.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { bundled, bundlePage, licencesOf } from './bundle-page.ts';

const target = fileURLToPath(new URL('../dist/page/', import.meta.url));
const modules = {
  ...(await bundlePage('dist/browser/index.js', 'index')),
  ...(await bundlePage('dist/browser/page-worker.js', 'page-worker')),
};
await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
await writeFile(`${target}LICENSES.txt`, await licencesOf(bundled));
const kib = (bytes: number) => `${Math.round(bytes / 1024)} KiB`;
for (const [name, code] of Object.entries(modules)) {
  await writeFile(`${target}${name}`, code);
  console.log(`dist/page/${name}: ${kib(code.length)}, ${kib(gzipSync(code).length)} by gzip`);
}
