/** What the page is, and what it cannot do. */
import type { JSX } from 'preact';

export function About(): JSX.Element {
  return (
    <section class="card wide" aria-labelledby="about-title">
      <header>
        <h2 id="about-title">What this page is</h2>
      </header>
      <ul class="about">
        <li>
          The code that decides in <code>sallyport serve</code>, and that of <code>check</code>, <code>test</code> and{' '}
          <code>diff</code>, in one file. It asks no server, and its policy forbids the browser to let it.
        </li>
        <li>What you write stays in this page and is gone with it: save what you want to keep.</li>
        <li>
          What is saved as requests and claims, <code>sallyport test</code> runs; the config it names is not looked for
          here: the one beside it counts.
        </li>
      </ul>
      <h3>What it cannot do</h3>
      <ul class="about">
        <li>
          Verify signatures. Claims are taken for granted, as in <code>sallyport test</code>; a proof of a key (DPoP) in
          a header is taken for wrong, whoever made it, and a token in one for that of an unknown key or a wrong
          signature.
        </li>
        <li>
          Read files: keys, certificates and secrets that the config names are not looked at, and a certificate of a
          caller is given by name and thumbprint. A <code>Client-Cert</code> header is taken for none.
        </li>
        <li>Read the environment: texts for placeholders are given below the config.</li>
        <li>
          Know the store: revocations, keys of writes and tokens that were used, rates and limits are those of nobody.
        </li>
      </ul>
    </section>
  );
}
