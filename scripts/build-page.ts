/**
 * Writes dist/page/index.js, the entry factorflow/browser: one module without imports, which a page loads
 * from any file server and every bundler takes.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { bundlePage, pageLicenses } from './bundle-page.ts';

const target = fileURLToPath(new URL('../dist/page/', import.meta.url));
const code = await bundlePage('dist/browser/index.js');
await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
await writeFile(`${target}index.js`, code);
await writeFile(`${target}LICENSES.txt`, await pageLicenses());
const kib = (bytes: number) => `${Math.round(bytes / 1024)} KiB`;
console.log(`dist/page/index.js: ${kib(code.length)}, ${kib(gzipSync(code).length)} by gzip`);
