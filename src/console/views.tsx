/** Views of a page, of which one is shown at a time. */
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';

/** Names as the address has them, and as people read them; the first is shown where the address has none. */
type Views<Name extends string> = readonly [readonly [Name, string], ...(readonly (readonly [Name, string])[])];

/** The part of the address behind `#` says which view is shown, so that a view can be kept and gone back to. */
export function useView<Name extends string>(views: Views<Name>): Name {
  const read = (): Name => (views.find(([name]) => `#${name}` === window.location.hash) ?? views[0])[0];
  const [view, setView] = useState(read);
  useEffect(() => {
    const changed = (): void => {
      // The link past the navigation is no view.
      if (window.location.hash !== '#main') setView(read());
    };
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return view;
}

interface NavigationProps<Name extends string> {
  readonly views: Views<Name>;
  readonly current: Name;
}

export function Navigation<Name extends string>({ views, current }: NavigationProps<Name>): JSX.Element {
  return (
    <nav aria-label="Views">
      {views.map(([name, label]) => (
        <a key={name} href={`#${name}`} aria-current={current === name ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}
