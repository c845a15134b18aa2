import { joinBytes } from '../files/stored-bytes.ts';
import { waitForOther } from '../../engine/waits.ts';
import { contentRange } from './fetch-range.ts';
import { chunksOf, get, lengthOf, TransientFailure, problemOf, refuse, withAttempts } from './request.ts';
import { isUnversioned, type UrlVersions } from './url-versions.ts';

/**
 * All bytes of a file on a web server, as they arrive; this needs no support for ranges. Retries twice before
 * the first bytes. Throws DataError that names the URL, also if fewer bytes arrive than announced; UsageError
 * for an invalid URL.
 */
export async function* streamUrl(url: string, versions?: UrlVersions): AsyncGenerator<Uint8Array> {
  const problem = problemOf(url, 'the whole file');
  const answer = await withAttempts(async () => {
    const found = await get(url, {});
    if (found.response.status === 200) return found;
    await found.response.body?.cancel().catch(() => undefined);
    return refuse(found.response, problem);
  }, problem);
  const { headers } = answer.response;
  const version = { etag: headers.get('etag'), modified: headers.get('last-modified') };
  try {
    versions?.require(url, { ...version, size: lengthOf(answer.response) }, problem);
  } catch (error) {
    await answer.response.body?.cancel().catch(() => undefined);
    throw error;
  }
  const received = chunksOf(answer);
  const chunks =
    versions !== undefined && isUnversioned(version) ? versions.compared(url, received, problem) : received;
  let length = 0;
  try {
    for (;;) {
      const chunk = await waitForOther(chunks.next());
      if (chunk.done) break;
      length += chunk.value.length;
      yield chunk.value;
    }
  } catch (error) {
    if (!(error instanceof TransientFailure)) throw error;
    throw problem(`${error.message}, after ${length} bytes`, 'Check the connection and try again', error);
  } finally {
    await chunks.return(undefined);
  }
}

/** Facts about a file on a web server. */
export interface UrlHead {
  /** First bytes; fewer if the file is shorter. */
  readonly bytes: Uint8Array;
  /** Bytes of the whole file, if the server reports them. */
  readonly size: number | undefined;
  /** The content type that the server sends, in lower case and without parameters: "text/csv". */
  readonly type: string;
}

/** First bytes of a file on a web server, with its size and type. Throws as streamUrl does. */
export function headOfUrl(url: string, length: number): Promise<UrlHead> {
  const problem = problemOf(url, `the first ${length} bytes`);
  return withAttempts(async () => {
    const answer = await get(url, { Range: `bytes=0-${length - 1}` });
    const { response } = answer;
    try {
      const isEmpty = response.status === 416 && response.headers.get('content-range') === 'bytes */0';
      if (isEmpty) return { bytes: new Uint8Array(0), size: 0, type: typeOf(response) };
      if (response.status !== 206 && response.status !== 200) return refuse(response, problem);
      const announced = response.headers.get('content-range') ?? 'bytes from an unknown place';
      if (response.status === 206 && !/^bytes 0-\d+\//.test(announced))
        throw problem(`the server sends ${announced} instead`, 'Download the file first');
      const parts: Uint8Array[] = [];
      let received = 0;
      for await (const part of chunksOf(answer)) {
        parts.push(part);
        received += part.length;
        if (received >= length) break;
      }
      const size = response.status === 200 ? lengthOf(response) : contentRange(response)?.size;
      return { bytes: joinBytes(parts).subarray(0, length), size, type: typeOf(response) };
    } finally {
      if (!response.bodyUsed) await response.body?.cancel().catch(() => undefined);
    }
  }, problem);
}

function typeOf({ headers }: Response): string {
  return (headers.get('content-type') ?? '').split(';')[0].trim().toLowerCase();
}
