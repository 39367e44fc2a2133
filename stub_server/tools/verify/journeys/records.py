"""Unique values are unique, what is deleted is gone, and records of others stay as they are."""

from typing import Any

from ....contract.document import Operation
from ..catalogue import Resource, body_of, member_of, pointer_of
from ..probes import FOREIGN, Seen, placeholder
from ..walking import Walk
from .listing import narrowing


async def unique(walk: Walk, resource: Resource) -> None:
    """A value that must be unique, for a second record and for a change, also in
    another spelling.
    """
    if resource.delete is not None or resource.role not in walk.present:
        await walk.make(resource, **walk.body(resource.create))
    for key in walk.document.unique.get(resource.schema, ()):
        member = key.members[0]
        value = walk.present[resource.role].get(member)
        if key.code is None or not isinstance(value, str):
            continue
        spelled = {
            "punctuation": f"{value[:3]}.{value[3:6]}.{value[6:9]}-{value[9:]}",
            "blanks": f" {value.replace(' ', '  ')} ",
            "case": value.upper(),
        }
        tried = {"": value, **{f" in other {each}": spelled[each] for each in key.ignores}}
        for operation in filter(None, (resource.create, resource.update)):
            others = walk.plain(operation) if operation == resource.create else {}
            for how, sent in tried.items():
                seen = await walk.ask(
                    operation,
                    "persists",
                    f"{member}{how}: that another record has",
                    member_of(operation, member),
                    path=operation.path.replace(f"{{{resource.key}}}", f"{{{resource.role} more}}"),
                    body={**others, member: sent},
                    suspect="uniqueness",
                )
                if walk.is_lasting and not seen.is_alike:
                    break


async def remembers(walk: Walk, resource: Resource) -> None:
    """What the parents of a record count, what the list has of it, and what is left of it: when
    another one is made with other texts in the same part, and when it was deleted.
    """
    create = resource.create
    delete = resource.delete
    update = resource.update
    listing = resource.list
    query = {} if listing is None else narrowing(walk, listing, resource)
    changed = {}
    for name, part in walk.plain(create).items():
        if isinstance(part, dict) and "name" in part:  # such as the customer of an order
            changed[name] = part | {"name": walk.variants.text(12)}
    await walk.make(resource)
    if changed:
        await walk.make(resource, f"{resource.role} more", **changed)

    async def sent(asked: Operation, learns: str, suspect: str, **more: Any) -> Seen:
        return await walk.ask(asked, "persists", learns, suspect=suspect, **more)

    async def shown(about: Operation, which: str, suspect: str) -> None:
        for parent in walk.needs(create):
            for each in walk.reads_about(parent):
                await sent(each, f"{parent.role} after {about.id}", "figures")
        if listing is not None and query:
            await sent(
                listing,
                f"the {which} record, in the list",
                suspect,
                pointer=pointer_of(about),
                about=about,
                query=query,
                narrowed=True,
            )

    if changed and resource.read is not None:
        learns = f"a read after another {create.id}"
        at = body_of(create)
        await sent(resource.read, learns, "not-persisted", pointer=at, about=create)
    await shown(create, "created", "not-persisted")
    if walk.may(update):
        await sent(update, "an update", "not-persisted", body=walk.body(update))
        await shown(update, "updated", "not-persisted")
    if not walk.may(delete):
        return
    if not (await sent(delete, "delete", "lifecycle")).is_alike:
        return
    await shown(delete, "deleted", "not-deleted")
    await sent(delete, "delete again", "not-deleted")
    for each in walk.document.operations.values():
        if walk.may(each) and placeholder(f"{resource.role} public") in walk.path(each):
            await sent(each, "the deleted record", "not-deleted")
    if walk.may(update):
        await sent(update, "the deleted record", "not-deleted", body=walk.body(update))
    walk.present.pop(resource.role)


async def isolated(walk: Walk, resource: Resource) -> None:
    """Another merchant neither reads a record nor changes it, also where it is refused."""
    other = walk.run.options.other
    is_refused = bool(other)
    for operation in walk.about(resource) if other else ():
        await walk.ready(resource)
        seen = await walk.ask(
            operation,
            "rejects",
            FOREIGN,
            body=walk.body(operation),
            credential=other,
            suspect="auth",
            expects=404,
        )
        is_refused = is_refused and not seen.target.is_success
    if is_refused and resource.read is not None:
        learns = "a read after what another merchant was refused"
        await walk.ask(resource.read, "rejects", learns, suspect="auth")
